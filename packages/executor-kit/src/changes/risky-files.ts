import type { TreeEntry } from "../checkpoints/workspace-tree.ts";

/** What else is in the workspace. */
export interface Surroundings {
  /** @param path - in small letters. */
  readonly exists: (path: string) => boolean;
  /** Whether a link leads out of the workspace. */
  readonly leadsOut: (link: string) => boolean;
}

/**
 * A kind of files that are run by others. Code chooses paths, which can be very long: no pattern may be matched in more than one way, and those
 * with `*` or `+` only see a name. All are matched in small letters, since file systems may not tell them from capital ones.
 */
interface RiskyKind {
  readonly reason: string;
  /** Matches a file's name. */
  readonly names?: RegExp;
  /** The file is below one of these directories. */
  readonly above?: Directories;
  /** Matches the end of the path, with `/` before it. */
  readonly end?: RegExp;
}

/** Directories of which what is in them is run by others. */
interface Directories {
  /** Matches one of them in a path, with `/` before and after it. */
  readonly within: RegExp;
  /** The same of one of them, or of one above, at the end of a path. */
  readonly atEnd: RegExp;
}

const git = "Git may run programs that it names, or is one of them.";
const versions = "A version control system may run programs that it names.";
const editor = "An editor or an agent that opens the directory may run what it configures.";
const agent = "An agent that works in the directory takes it for instructions.";
const shell = "A shell or an environment manager may run it, or set variables from it.";
const account = "A program may run what it names, if the directory is somebody's home.";
const javascript = "A JavaScript tool may run it, its scripts, or what it configures.";
const python = "Python or one of its tools may run it, or what it configures.";
const build = "A build tool may run it.";
const tool = "A tool that starts in the directory may run it, or what it configures.";
const service = "A CI or hosting service may run it.";
const container = "A container tool or virtual machine may run what it describes.";

const kinds: readonly RiskyKind[] = [
  {
    reason: git,
    names: named("\\.gitattributes|\\.gitmodules|\\.gitconfig"),
    above: below("\\.husky \\.githooks"),
  },
  // Wherever `core.hooksPath` leads.
  {
    reason: git,
    names: named(
      "(?:pre|post)-(?:commit|rewrite|checkout|merge|push|rebase|applypatch|receive|update|auto-gc|merge-commit|index-change)|(?:prepare-)?commit-msg|applypatch-msg|fsmonitor-watchman|sendemail-validate|reference-transaction|push-to-checkout|proc-receive",
    ),
  },
  {
    reason: git,
    names: named(
      "\\.pre-commit-config\\.ya?ml|\\.?lefthook(?:-local)?\\.(?:ya?ml|toml|json)|\\.lintstagedrc.*|\\.overcommit\\.yml",
    ),
  },
  { reason: versions, names: named("\\.hgrc"), end: atEnd("\\.hg/hgrc|\\.jj/repo/config\\.toml") },
  {
    reason: editor,
    names: named(
      ".*\\.code-workspace|\\.devcontainer\\.json|\\.?mcp\\.json|\\.n?vimrc|\\.l?vimrc|\\.nvim\\.lua|\\.exrc|\\.dir-locals(?:-2)?\\.el|.*\\.sublime-project|\\.gitpod\\.yml|\\.replit",
    ),
    above: below(
      "\\.vscode \\.idea \\.run \\.vs \\.fleet \\.zed \\.helix \\.nova \\.theia \\.devcontainer \\.codesandbox",
    ),
  },
  {
    reason: editor,
    names: named("\\.aider\\.conf\\.ya?ml|\\.?opencode\\.jsonc?"),
    above: below(
      "\\.cursor \\.claude \\.gemini \\.codex \\.agents? \\.opencode \\.windsurf \\.continue \\.cline \\.roo \\.kiro \\.junie \\.amazonq \\.qwen",
    ),
  },
  {
    reason: agent,
    names: named(
      "(?:agents?|claude|gemini|qwen|jules)(?:\\.local|\\.override)?\\.md|skill\\.md|copilot-instructions\\.md|.+\\.instructions\\.md|\\.(?:cursor|windsurf|cline|roo|goose)rules.*|\\.goosehints",
    ),
  },
  {
    reason: shell,
    names: named(
      "\\.envrc|\\.env(?:\\..+)?|\\.autoenv.*|\\.?mise(?:\\..+)?\\.toml|\\.tool-versions|flake\\.nix|shell\\.nix|default\\.nix|devenv\\.nix|devbox\\.json",
    ),
  },
  {
    reason: shell,
    names: named(
      "\\.bashrc|\\.bash_(?:profile|login|logout|aliases)|\\.profile|\\.z(?:shrc|shenv|profile|login|logout)|\\.k(?:sh|she)rc|\\.t?cshrc|\\.login|config\\.(?:fish|nu)|\\.inputrc|\\.xprofile|\\.xinitrc|\\.xsession(?:rc)?|\\.pam_environment|.*profile\\.ps1",
    ),
  },
  {
    reason: account,
    names: named("authorized_keys2?|\\.netrc|\\.curlrc|\\.wgetrc|\\.pypirc|\\.tmux\\.conf|\\.screenrc|\\.forward"),
    above: below(
      "\\.ssh \\.gnupg \\.local/bin \\.config/git \\.config/fish \\.config/autostart \\.config/systemd \\.config/environment\\.d library/launchagents",
    ),
    end: atEnd("\\.aws/config|\\.kube/config|\\.docker/config\\.json"),
  },
  {
    reason: javascript,
    names: named(
      "package\\.json|\\.npmrc|\\.yarnrc(?:\\.ya?ml)?|\\.?pnpmfile\\.[cm]?js|pnpm-workspace\\.yaml|bunfig\\.toml|deno\\.jsonc?|\\.pnp\\.(?:c?js|loader\\.mjs)",
    ),
    above: below("node_modules/\\.bin \\.yarn/releases \\.yarn/plugins"),
  },
  {
    reason: javascript,
    names: named(
      ".+\\.config\\.[cm]?[jt]s(?:on)?|\\..+rc(?:\\.[cm]?[jt]s|\\.jsonc?|\\.ya?ml)|\\.(?:babel|eslint|prettier|stylelint|mocha|nyc|swc|jest|parcel|postcss|release-it)rc|(?:gulp|grunt|cake)file(?:\\..+)?|(?:nx|turbo|lerna|project|angular|workspace)\\.json|[jt]sconfig(?:\\..+)?\\.json",
    ),
  },
  {
    reason: python,
    names: named(
      "pyvenv\\.cfg|.+\\.pth|conftest\\.py|(?:site|user)customize\\.py|setup\\.(?:py|cfg)|pyproject\\.toml|tox\\.(?:ini|toml)|\\.?pytest\\.(?:ini|toml)|noxfile\\.py|pipfile|requirements.*\\.(?:txt|in)|\\.?pylintrc(?:\\.toml)?|\\.?mypy\\.ini|\\.coveragerc|\\.flake8|\\.pdbrc(?:\\.py)?|fabfile\\.py|dodo\\.py|pavement\\.py",
    ),
    above: below("(?:site|user)customize"),
  },
  { reason: python, above: below("\\.?(?:venv|env|virtualenv)/bin \\.?(?:venv|env|virtualenv)/scripts") },
  { reason: python, end: atEnd("bin/activate[^/]*") },
  {
    reason: build,
    names: named(
      "(?:gnu|bsd)?makefile(?:\\.(?:am|in|pl))?|.+\\.mk|\\.?justfile|.+\\.just|taskfile(?:\\.dist)?\\.ya?ml|magefile\\.go|earthfile|cmakelists\\.txt|.+\\.cmake|cmake(?:user)?presets\\.json|meson\\.build|configure(?:\\.ac|\\.in)?|autogen\\.sh|sconstruct|sconscript|wscript|build\\.ninja",
    ),
  },
  {
    reason: build,
    names: named(
      "\\.bazelrc|\\.bazelversion|build(?:\\.bazel)?|workspace(?:\\.bazel|\\.bzlmod)?|module\\.bazel|.+\\.bzl|\\.buckconfig|buck|pants\\.toml",
    ),
  },
  {
    reason: build,
    names: named(
      "build\\.rs|cargo\\.toml|rust-toolchain(?:\\.toml)?|build\\.zig|package\\.swift|go\\.(?:mod|work)|gradlew(?:\\.bat)?|mvnw(?:\\.cmd)?|.+\\.gradle(?:\\.kts)?|gradle\\.properties|pom\\.xml|build\\.xml|.+\\.sbt|mix\\.exs|rebar\\.config(?:\\.script)?|.+\\.(?:cs|fs|vb|vcx)proj|.+\\.(?:props|targets|sln|slnx)|nuget\\.config|dotnet-tools\\.json|composer\\.json",
    ),
    above: below("\\.mvn gradle/wrapper buildsrc"),
    end: atEnd("\\.cargo/config(?:\\.toml)?"),
  },
  {
    reason: build,
    names: named(
      "rakefile|gemfile|guardfile|brewfile|podfile|fastfile|.+\\.gemspec|\\.rspec|\\.irbrc|\\.pryrc|\\.rubocop\\.yml",
    ),
    end: atEnd("\\.bundle/config"),
  },
  {
    reason: tool,
    names: named(
      "\\.gdbinit|\\.lldbinit|\\.rprofile|\\.renviron|\\.rdata|\\.ghci|\\.psqlrc|\\.sqliterc|\\.user\\.ini|\\.htaccess|\\.perltidyrc|\\.emacs|\\.ansible\\.cfg|ansible\\.cfg|.+\\.tf(?:\\.json)?|\\.terraformrc|vagrantfile|tiltfile",
    ),
  },
  {
    reason: service,
    names: named(
      "\\.gitlab-ci\\.ya?ml|jenkinsfile(?:\\..+)?|azure-pipelines.*\\.ya?ml|bitbucket-pipelines\\.ya?ml|\\.travis\\.ya?ml|\\.drone\\.ya?ml|\\.woodpecker\\.ya?ml|\\.?appveyor\\.ya?ml|\\.cirrus\\.(?:ya?ml|star)|cloudbuild\\.ya?ml|buildspec\\.ya?ml|vercel\\.json|netlify\\.toml|procfile|render\\.yaml|fly\\.toml",
    ),
    above: below(
      "\\.(?:github|gitea|forgejo)/workflows \\.(?:github|gitea|forgejo)/actions \\.github/hooks \\.gitlab \\.circleci \\.buildkite \\.woodpecker \\.semaphore \\.teamcity",
    ),
    end: atEnd("\\.github/dependabot\\.ya?ml"),
  },
  {
    reason: container,
    names: named(
      "(?:dockerfile|containerfile)(?:\\..+)?|.+\\.(?:dockerfile|containerfile)|(?:docker-)?compose(?:\\..+)?\\.ya?ml|docker-bake(?:\\..+)?\\.(?:hcl|json)|skaffold\\.ya?ml",
    ),
  },
  {
    reason: "A desktop may run what it names when the directory is opened, or it is clicked.",
    names: named(
      ".+\\.desktop|\\.directory|desktop\\.ini|autorun\\.inf|.+\\.(?:lnk|url|scf|webloc|command|library-ms)",
    ),
  },
];

/** Parts of a repository that name programs, or where more of it is. */
const gitName = named("config(?:\\.worktree)?|attributes|commondir|gitdir|git-rebase-todo|todo");
/** Directories that contain such a directory or file: a link or file that takes their place is risky, too. */
const { atEnd: other } = below(
  "\\.git/hooks \\.git/info node_modules \\.cargo \\.aws \\.kube \\.docker \\.hg \\.jj \\.bundle",
);

/** Any of the directories of `kinds`: most paths are below none of them, and can be long. */
const anyDirectory = new RegExp(kinds.flatMap(({ above }) => (above ? [above.within.source] : [])).join("|"));
const ends = [other, ...kinds.flatMap(({ above }) => (above ? [above.atEnd] : []))];

/** Says why others may run a file that code created or changed; `undefined` if no reason is known. */
export function riskOf(entry: TreeEntry, { exists, leadsOut }: Surroundings): string | undefined {
  const { type, path } = entry;
  const whole = `/${path.toLowerCase()}`;
  const nameAt = whole.lastIndexOf("/") + 1;
  const [directory, name] = [whole.slice(0, nameAt), whole.slice(nameAt)];
  if (completesRepository(directory, name, exists)) return git;
  if (type === "directory") return undefined;
  if (entry.isPrivileged === true && (entry.mode & 0o111) !== 0) {
    return "It runs with the rights of its owner or group (setuid, setgid).";
  }
  if (isInRepository(directory, name)) return git;
  const tail = lastParts(whole);
  const isBelow = anyDirectory.test(directory);
  const kind = kinds.find(
    ({ names, above, end }) =>
      names?.test(name) === true || (isBelow && above?.within.test(directory) === true) || end?.test(tail) === true,
  );
  if (kind) return kind.reason;
  if (ends.some((each) => each.test(`${tail}/`))) {
    return "It takes the place of a directory whose files are run by others.";
  }
  if (type === "link" && leadsOut(path)) {
    return "It is a link that leads out of the workspace: who writes or runs it does so there.";
  }
  return undefined;
}

/** The last three names of a path, which are all that a pattern for its end needs. */
function lastParts(path: string): string {
  let start = path.length;
  for (let parts = 0; parts < 3 && start > 0; parts += 1) start = path.lastIndexOf("/", start - 1);
  return path.slice(start);
}

function isInRepository(directory: string, name: string): boolean {
  const start = directory.indexOf("/.git/");
  return start !== -1 && (gitName.test(name) || directory.includes("/hooks/", start + 5));
}

/**
 * Whether a path is a part of a repository without `.git`, or makes one of what was there: git takes any directory with these entries for a
 * repository. Code may create them one by one, in any order.
 */
function completesRepository(directory: string, name: string, exists: Surroundings["exists"]): boolean {
  if (directory.includes("/.git/")) return false;
  const isHook = directory.endsWith("/hooks/");
  const top = isHook ? directory.slice(1, -"hooks/".length) : directory.slice(1);
  const has = (...names: string[]): boolean => names.every((each) => exists(`${top}${each}`));
  if (isHook) return has("head", "objects", "refs");
  if (name === "commondir") return has("head");
  // HEAD may be elsewhere, with a file `commondir` that leads here.
  if (name === "config") return has("objects", "refs");
  return /^(?:head|objects|refs)$/.test(name) && has("head", "objects", "refs", "config");
}

function named(names: string): RegExp {
  // Names may have line breaks.
  return new RegExp(`^(?:${names})$`, "s");
}

/** @param directories - with spaces between them. */
function below(directories: string): Directories {
  const paths = directories.split(" ").map((path) => path.split("/"));
  const wholes = paths.map((parts) => parts.join("/"));
  const tops = paths.flatMap((parts) => parts.map((_, index) => parts.slice(0, index + 1).join("/")));
  return { within: new RegExp(`/(?:${wholes.join("|")})/`), atEnd: new RegExp(`/(?:${tops.join("|")})/$`) };
}

function atEnd(paths: string): RegExp {
  return new RegExp(`/(?:${paths})$`);
}
