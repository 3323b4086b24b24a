/** Why an image could not be pulled, and what to do. */
interface PullFailure {
  readonly why: string;
  readonly remedy: string;
}

/** What a daemon's message means for a registry. */
interface Meaning extends PullFailure {
  /** The words of daemons, which differ by version. */
  readonly said: RegExp;
}

const unreachable =
  /no such host|connection refused|i\/o timeout|network is unreachable|no route to host|deadline exceeded|Client\.Timeout|handshake timeout|connection reset|EOF$/i;
const longestSaid = 200;

/** In this order, because some messages contain the words of several; `$` is the registry. */
const meanings: readonly Meaning[] = [
  {
    said: /no space left|disk quota/i,
    why: "the daemon's disk is full",
    remedy: "Remove images that are not needed: `docker image prune`.",
  },
  {
    said: /toomanyrequests|too many requests|rate limit/i,
    why: "$ allows no more pulls for now",
    remedy: "Try again later, or run `docker login`, which raises the limit.",
  },
  {
    said: /no matching manifest|no image found .*for architecture/i,
    why: "$ has it for other platforms only",
    remedy: "Choose an image for the platform of the daemon's machine.",
  },
  {
    said: /denied|unauthorized|authentication required|no basic auth|HTTP (?:status: )?40[13]\b/i,
    why: "$ has no such image, or it is private",
    remedy: "Check its name. If it is private, run `docker login` and `docker pull` on the daemon's machine.",
  },
  {
    said: /HTTP response to HTTPS client|x509:|certificate (?:signed by|has expired|is (?:not )?valid)/i,
    why: "$ has no certificate that the daemon trusts",
    remedy: "Give the daemon the registry's authority, or add the registry to its `insecure-registries`.",
  },
  {
    said: /manifest unknown|not found|does not exist|HTTP (?:status: )?404\b/i,
    why: "$ has no such image or tag",
    remedy: "Check its name and tag, or build or load it beforehand.",
  },
];

/**
 * Explains a failed pull in a sentence: the daemon's message has the addresses that it asked, and may have a whole web
 * page.
 *
 * @param said - the daemon's message.
 */
export function explainPull(image: string, said: string): PullFailure {
  const registry = registryOf(image);
  const words = withoutName(image, said);
  const [problem] = unreachable.exec(words) ?? [];
  if (problem !== undefined) {
    return {
      why: `the daemon cannot reach ${registry} (${problem})`,
      remedy: "Check the daemon's network and proxy, or build or load the image beforehand.",
    };
  }
  const meaning = meanings.find((each) => each.said.test(words));
  if (meaning) return { why: meaning.why.replace("$", () => registry), remedy: meaning.remedy };
  const [, status] = /HTTP (?:status: )?(\d{3})\b/.exec(said) ?? [];
  const [line = ""] = said.split("\n");
  return {
    why:
      status === undefined ? line.slice(0, longestSaid).replace(/\.$/, "") : `${registry} answered with HTTP ${status}`,
    remedy: `Try \`docker pull ${image}\` on the daemon's machine, or build or load the image beforehand.`,
  };
}

/** An image may be called what a daemon says. Plain words are left, because they may not be the name. */
function withoutName(image: string, said: string): string {
  const repository = image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
  const inRegistry = repository.replace(`${registryOf(image)}/`, "");
  const names = [image, `${image}:latest`, repository, inRegistry, `library/${repository}`];
  return names
    .filter((name) => /[/:]/.test(name))
    .toSorted((one, other) => other.length - one.length)
    .reduce((text, name) => text.replaceAll(name, ""), said);
}

/** A name's first part is a registry only if it looks like an address. */
function registryOf(image: string): string {
  const [first = "", ...rest] = image.split("/");
  return rest.length > 0 && /[.:]|^localhost$/.test(first) ? first : "Docker Hub";
}
