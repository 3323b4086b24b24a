#!/usr/bin/env bash
# Kubernetes for the tests, on Debian, as root, with Docker and the image fenced-test:python:
#
#   scripts/ci/kubernetes.sh up         uses the cluster of KUBECONFIG if it answers; otherwise builds Kubernetes from Debian's source
#                                       package, once, in 10 to 40 minutes, and starts it on the loopback interface
#   scripts/ci/kubernetes.sh with COMMAND...  runs the command with a cluster, which it stops afterwards; if "up" would have to build,
#                                       it runs the command without one, and tests that need a cluster are skipped
#   scripts/ci/kubernetes.sh ready      succeeds if "up" would not have to build
#   scripts/ci/kubernetes.sh version    prints the version of the cluster that "up" would not have to start; fails if there is none
#   scripts/ci/kubernetes.sh pods       prints the pods that Fenced has created in the cluster that "up" started
#   scripts/ci/kubernetes.sh kill NAME  kills kube-apiserver or kubelet that "up" started; "revive NAME" starts it again
#   scripts/ci/kubernetes.sh down       stops what "up" started, and removes everything it left
#   scripts/ci/kubernetes.sh packages   prints what "up" installs, for packages.sh
#
# Four binaries and an image stay in the cache. Kubernetes 1.20 is the last version in Debian, and uses Docker Engine directly.
set -euo pipefail

# Without links, which `/proc/self/mounts` does not show.
cache=$(realpath -m "${XDG_CACHE_HOME:-$HOME/.cache}/fenced/kubernetes")
binaries=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
# Everything of the running cluster: data, keys, logs, process ids. The tests read the kubeconfig in it.
state=$cache/run
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=1.20.2
etcd=127.0.0.1:23790 api=127.0.0.1:16443 kubelet_port=16250
# The KUBERNETES_SERVICE_HOST of pods. There is no load balancer: the machine itself has that address.
service=10.222.0.1
# On since Kubernetes 1.21: Jobs that have ended are deleted.
gates=TTLAfterFinished=true
pause=fenced-test:pause

up() {
  if given; then
    echo "Using the cluster of KUBECONFIG."
    return
  fi
  mkdir -p "$cache"
  # One at a time; a second run finds the first one's work done.
  exec 9>"$cache/lock"
  flock 9
  ready || build
  # shellcheck disable=SC2046
  "$here/packages.sh" $(packages)
  if answers; then
    echo "Kubernetes is already running."
    return
  fi
  down_unlocked
  make_pause_image
  start_all
}

# with COMMAND...
with_cluster() {
  # Those who leave out backends start none.
  if [[ -n ${FENCED_WITHOUT-} ]]; then
    "$@"
    return
  fi
  if ! given && ! answers; then
    if ready; then
      trap down EXIT
      trap 'exit 143' TERM INT
      # In another process, which releases the lock when it ends.
      "$here/kubernetes.sh" up
    else
      echo "Kubernetes has not been built here (run \"scripts/ci/kubernetes.sh up\" once): tests that need a cluster are skipped."
      "$@"
      return
    fi
  fi
  # What a run of several tasks has found before there was a cluster says that there is none.
  unset FENCED_BACKENDS
  # In the background, because bash handles a signal only while it waits.
  FENCED_REQUIRE=kubernetes,root "$@" &
  wait $!
}

given() {
  [[ -n ${KUBECONFIG-} && ${KUBECONFIG-} != "$state/kubeconfig" ]] && command -v kubectl >/dev/null &&
    timeout 20 kubectl get --raw /readyz >/dev/null 2>&1
}

version() {
  if given; then
    timeout 10 kubectl version --output json | tr -d ' \n' | sed -E 's/.*"serverVersion":\{[^}]*"gitVersion":"([^"]*)".*/\1/'
  else
    answers_in_time || {
      echo "no cluster answers" >&2
      return 1
    }
    echo "v$version"
  fi
}

ready() {
  local name
  for name in "${binaries[@]}"; do [[ -x $cache/bin/$name ]] || return 1; done
  [[ -e $cache/pause.tar ]]
}

pods() {
  answers || return 0
  get "/api/v1/pods?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dfenced" | sed -nE 's/^ *"name": *"(fenced-[^"]*)".*/pod \1/p' | sort -u
}

packages() {
  echo etcd-server:etcd openssl:openssl curl:curl conntrack:conntrack ethtool:ethtool socat:socat iptables:iptables iproute2:ip
}

build() {
  local work tree
  "$here/packages.sh" golang-go:go gcc:gcc libc6-dev make:make rsync:rsync jq:jq golang-github-modern-go-reflect2-dev
  # An interrupted build continues where it stopped.
  work=$cache/build
  tree=$work/src/k8s.io/kubernetes
  mkdir -p "$work"
  [[ -e $work/unpacked ]] || fetch "$work" "$tree"
  echo "Building Kubernetes $version: this takes 10 to 40 minutes, once."
  (
    cd "$tree"
    export GOPATH=$work GOCACHE=$work/cache CGO_ENABLED=0 KUBE_GIT_VERSION=v$version KUBE_GIT_TREE_STATE=clean KUBE_GIT_COMMIT=debian
    nice -n 19 make WHAT="${binaries[*]/#/cmd/}" GOLDFLAGS="-s -w" >"$work/log" 2>&1
  ) || {
    tail -n 30 "$work/log"
    return 1
  }
  mkdir -p "$cache/bin" "$work/pause"
  cp "${binaries[@]/#/$tree/_output/bin/}" "$cache/bin/"
  gcc -Os -static -o "$work/pause/pause" "$tree/build/pause/linux/pause.c"
  tar --create --directory "$work/pause" --file "$cache/pause.tar" pause
  chmod -R u+w "$work"
  rm -rf "$work"
}

# fetch WORK TREE: the source, patched for newer compilers and this kind of machine.
fetch() {
  local work=$1 tree=$2 mirror
  rm -rf "${work:?}/src" "$work/source"
  mkdir -p "$work/source/lists/partial" "$tree"
  mirror=$(sed -nE 's/^(URIs: |deb (\[[^]]*\] )?)(https?:[^ ]*\/debian)\/? ?.*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1) || true
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} bookworm main" >"$work/source/list"
  (
    cd "$work/source"
    # Separate lists, so that the machine's stay unchanged.
    local options=(-qq -o "Dir::Etc::SourceList=$PWD/list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$PWD/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache=)
    apt-get update "${options[@]}"
    apt-get source --download-only "${options[@]}" kubernetes
    tar --extract --strip-components=1 --directory "$tree" --file kubernetes_*.orig.tar.gz
  )
  cd "$tree"
  # With Go 1.18 and later, the vendored version crashes as soon as there is a custom resource.
  rm -rf vendor/github.com/modern-go/reflect2
  cp -r /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/reflect2
  # Without CAP_SYS_RESOURCE no process may have a score below that of its parent.
  change pkg/kubelet/dockershim/docker_sandbox.go 's/^(\tdefaultSandboxOOMAdj int = )-998/\10/'
  change pkg/kubelet/qos/policy.go 's/return guaranteedOOMScoreAdj/return 0/'
  # Keep the settings of the machine's kernel.
  change pkg/kubelet/cm/container_manager_linux.go 's/b := KernelTunableModify/b := KernelTunableWarn/'
  cd - >/dev/null
  touch "$work/unpacked"
}

# change FILE EXPRESSION: fails if the expression changes nothing.
change() {
  local before
  before=$(cksum <"$1")
  sed -i -E "$2" "$1"
  [[ $before != $(cksum <"$1") ]] || {
    echo "$1 does not contain the expected text."
    return 1
  }
}

make_pause_image() {
  docker image inspect "$pause" >/dev/null 2>&1 || docker import --change 'ENTRYPOINT ["/pause"]' "$cache/pause.tar" "$pause" >/dev/null
}

start_all() {
  mkdir -p "$state/log" "$state/pids"
  chmod 700 "$state"
  make_keys
  make_settings
  start etcd etcd --name fenced --data-dir "$state/etcd" --unsafe-no-fsync \
    --listen-client-urls "http://$etcd" --advertise-client-urls "http://$etcd" \
    --listen-peer-urls http://127.0.0.1:23800 --initial-advertise-peer-urls http://127.0.0.1:23800 --initial-cluster fenced=http://127.0.0.1:23800
  start_kube-apiserver
  start kube-controller-manager "$cache/bin/kube-controller-manager" --kubeconfig "$state/controller-manager.conf" --leader-elect=false --use-service-account-credentials \
    --feature-gates "$gates" --port 0 --secure-port 0 --root-ca-file "$state/ca.crt" --service-account-private-key-file "$state/server.key"
  start kube-scheduler "$cache/bin/kube-scheduler" --kubeconfig "$state/scheduler.conf" --leader-elect=false --port 0 --secure-port 0
  start_kubelet
  until_true "the node" node_is_ready
  ip address add "$service/32" dev lo 2>/dev/null || true
  start socat socat "TCP-LISTEN:443,bind=$service,reuseaddr,fork" "TCP:$api"
  until_true "the namespace's service account" reaches /api/v1/namespaces/default/serviceaccounts/default
  echo "Started Kubernetes $version. KUBECONFIG=$state/kubeconfig"
}

start_kube-apiserver() {
  start kube-apiserver "$cache/bin/kube-apiserver" --etcd-servers "http://$etcd" \
    --feature-gates "$gates" --bind-address "${api%:*}" --secure-port "${api#*:}" --insecure-port 0 --endpoint-reconciler-type none \
    --tls-cert-file "$state/server.crt" --tls-private-key-file "$state/server.key" --client-ca-file "$state/ca.crt" \
    --token-auth-file "$state/tokens.csv" --authorization-mode Node,RBAC --anonymous-auth=false \
    --kubelet-client-certificate "$state/server.crt" --kubelet-client-key "$state/server.key" --kubelet-certificate-authority "$state/ca.crt" \
    --kubelet-preferred-address-types Hostname --service-cluster-ip-range 10.222.0.0/24 \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$state/server.key" --service-account-signing-key-file "$state/server.key"
  until_true "the API server" reaches /readyz
}

start_kubelet() {
  start kubelet "$cache/bin/kubelet" --config "$state/kubelet.yaml" --kubeconfig "$state/kubelet.conf" --root-dir "$state/kubelet" \
    --container-runtime docker --pod-infra-container-image "$pause" --hostname-override localhost --runtime-cgroups / --kubelet-cgroups /
}

# kill NAME, revive NAME: for tests in which a part of the cluster ends.
kill_part() {
  kill -KILL "$(<"$state/pids/$1")"
}

revive_part() {
  ! kill -0 "$(<"$state/pids/$1")" 2>/dev/null || return 0
  "start_$1"
  until_true "$1" node_is_ready
}

# start NAME COMMAND...: runs the command in the background, with a log.
start() {
  local name=$1
  shift
  setsid nohup "$@" >"$state/log/$name" 2>&1 </dev/null 9>&- &
  echo "$!" >"$state/pids/$name"
}

# until_true WHAT COMMAND...
until_true() {
  local what=$1 name
  shift
  for _ in {1..300}; do
    "$@" && return
    for name in "$state"/pids/*; do
      kill -0 "$(<"$name")" 2>/dev/null || {
        echo "${name##*/} ended:"
        tail -n 20 "$state/log/${name##*/}"
        return 1
      }
    done
    sleep 0.5
  done
  echo "Timed out waiting for $what. Logs are in $state/log."
  return 1
}

# get PATH: prints the API server's answer.
get() {
  curl --silent --fail --max-time 5 --cacert "$state/ca.crt" --header "Authorization: Bearer $(<"$state/admin.token")" \
    "https://$api$1" 2>/dev/null
}

reaches() {
  get "$1" >/dev/null
}

answers() {
  [[ -e $state/admin.token ]] && reaches /readyz && node_is_ready
}

# A cluster that is running may be slow on a busy machine. Less than tests wait for the version.
answers_in_time() {
  local name
  until answers; do
    ((SECONDS < 20)) && [[ -e $state/pids/kubelet ]] || return 1
    for name in "$state"/pids/*; do kill -0 "$(<"$name")" 2>/dev/null || return 1; done
    sleep 0.5
  done
}

node_is_ready() {
  # The taint of a node disappears a moment after the node becomes ready.
  get /api/v1/nodes/localhost | tr -d ' \n' | grep -v '"taints"' | grep '"type":"Ready","status":"True"' >/dev/null
}

make_keys() {
  local name
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=fenced-test -keyout "$state/ca.key" -out "$state/ca.crt" 2>/dev/null
  # The API server's certificate, for its clients and, as a member of system:masters, for the kubelet.
  openssl req -newkey rsa:2048 -nodes -subj /O=system:masters/CN=apiserver -keyout "$state/server.key" -out "$state/server.csr" 2>/dev/null
  openssl x509 -req -days 3650 -in "$state/server.csr" -CA "$state/ca.crt" -CAkey "$state/ca.key" -CAcreateserial -out "$state/server.crt" \
    -extfile <(echo subjectAltName=IP:127.0.0.1,DNS:localhost) 2>/dev/null
  : >"$state/tokens.csv"
  for name in admin kubelet controller-manager scheduler; do
    head -c 24 /dev/urandom | base64 | tr -d '+/=\n' >"$state/$name.token"
  done
  {
    echo "$(<"$state/admin.token"),admin,1,system:masters"
    echo "$(<"$state/kubelet.token"),system:node:localhost,2,system:nodes"
    echo "$(<"$state/controller-manager.token"),system:kube-controller-manager,3"
    echo "$(<"$state/scheduler.token"),system:kube-scheduler,4"
  } >"$state/tokens.csv"
  for name in kubelet controller-manager scheduler; do kubeconfig "$name" >"$state/$name.conf"; done
  kubeconfig admin >"$state/kubeconfig"
}

kubeconfig() {
  cat <<END
apiVersion: v1
kind: Config
current-context: fenced
contexts: [{ name: fenced, context: { cluster: fenced, user: $1 } }]
clusters: [{ name: fenced, cluster: { server: "https://$api", certificate-authority: "$state/ca.crt" } }]
users: [{ name: $1, user: { token: "$(<"$state/$1.token")" } }]
END
}

make_settings() {
  # Never evict images or pods because the disk is full; leave the firewall unchanged.
  cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $kubelet_port
readOnlyPort: 0
healthzPort: 0
tlsCertFile: $state/server.crt
tlsPrivateKeyFile: $state/server.key
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: $state/ca.crt } }
authorization: { mode: Webhook }
cgroupDriver: cgroupfs
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
clusterDNS: [10.222.0.10]
clusterDomain: cluster.local
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: { memory.available: 100Mi, nodefs.available: "1%", nodefs.inodesFree: "0%", imagefs.available: "0%" }
oomScoreAdj: 0
maxPods: 250
registryPullQPS: 0
eventRecordQPS: 0
volumeStatsAggPeriod: 5s
volumePluginDir: $state/plugins
END
}

down() {
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  down_unlocked
}

down_unlocked() {
  [[ -e $state ]] || return 0
  local name container
  for name in socat kubelet kube-scheduler kube-controller-manager kube-apiserver etcd; do stop "$name"; done
  for container in $(docker ps --all --quiet --filter label=io.kubernetes.pod.namespace 2>/dev/null); do
    docker rm --force --volumes "$container" >/dev/null 2>&1 || true
  done
  { grep -oE " $state/[^ ]*" /proc/self/mounts || true; } | sort -r | while read -r name; do umount "$name" || true; done
  for name in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/kubepods; do
    [[ ! -d $name ]] || find "$name" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  docker rmi "$pause" >/dev/null 2>&1 || true
  ip address delete "$service/32" dev lo 2>/dev/null || true
  # Files that the kubelet keeps outside its directory. No other kubelet runs here, or its port would have been taken.
  rm -rf "$state" /var/lib/dockershim /var/run/dockershim.sock /var/log/pods /var/lib/kubelet/device-plugins
  find /var/log/containers -type l -delete 2>/dev/null || true
  rmdir /var/log/containers /var/lib/kubelet 2>/dev/null || true
}

# stop NAME: stops the process, but only if it is still the program that was started.
stop() {
  local pid
  pid=$(cat "$state/pids/$1" 2>/dev/null) || return 0
  grep -qszF "$1" "/proc/$pid/cmdline" || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in {1..50}; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.2
  done
  kill -KILL "$pid" 2>/dev/null || true
}

case ${1-} in
  up | ready | version | pods | down | packages) "$1" ;;
  with) with_cluster "${@:2}" ;;
  kill | revive)
    [[ ${2-} == kube-apiserver || ${2-} == kubelet ]] || exit 2
    "$1_part" "$2"
    ;;
  *)
    sed -n '2,15s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
