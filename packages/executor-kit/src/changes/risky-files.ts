import type { TreeEntry } from "../checkpoints/workspace-tree.ts";

/** What else is in the workspace. */
interface Surroundings {
  readonly exists: (path: string) => boolean;
  /** Whether a link leads out of the workspace. */
  readonly leadsOut: (link: string) => boolean;
}

/** A kind of files that are run by others. */
interface RiskyKind {
  /** Matches the path in small letters, since file systems may not tell them from capital ones; `name/` at its start or within it. */
  readonly pattern: RegExp;
  readonly reason: string;
}

const git = "Git may run programs that it names, or is one of them.";
const editor = "An editor or an agent that opens the directory may run what it configures.";
const shell = "A shell or an environment manager may run it, or set variables from it.";
const javascript = "A JavaScript tool may run it, its scripts, or what it configures.";
const python = "Python or one of its tools may run it, or what it configures.";
const build = "A build tool may run it.";
const service = "A CI service may run it.";
const container = "A container tool may run what it describes.";

/** Each matches the last part of a path, or a directory above it. */
const kinds: readonly RiskyKind[] = [
  { pattern: named("\\.gitattributes|\\.gitmodules|\\.gitconfig"), reason: git },
  {
    pattern: /(?:^|\/)\.git\/(?:.*\/)?(?:hooks\/.+|config(?:\.worktree)?|info\/attributes|commondir|gitdir)$/,
    reason: git,
  },
  { pattern: below("\\.husky|\\.githooks"), reason: git },
  { pattern: named("\\.pre-commit-config\\.ya?ml|\\.?lefthook\\.(?:ya?ml|toml|json)|\\.lintstagedrc.*"), reason: git },
  {
    pattern: below("\\.vscode|\\.idea|\\.devcontainer|\\.zed|\\.fleet|\\.cursor|\\.claude|\\.gemini|\\.codex"),
    reason: editor,
  },
  {
    pattern: named(
      ".*\\.code-workspace|\\.devcontainer\\.json|\\.mcp\\.json|\\.n?vimrc|\\.nvim\\.lua|\\.exrc|\\.dir-locals(?:-2)?\\.el",
    ),
    reason: editor,
  },
  { pattern: named("\\.envrc|\\.env(?:\\..+)?|\\.?mise(?:\\..+)?\\.toml|\\.tool-versions"), reason: shell },
  {
    pattern: named(
      "\\.bashrc|\\.bash_(?:profile|login|logout|aliases)|\\.profile|\\.z(?:shrc|shenv|profile|login|logout)|config\\.fish",
    ),
    reason: shell,
  },
  {
    pattern: named(
      "package\\.json|\\.npmrc|\\.yarnrc(?:\\.ya?ml)?|\\.pnpmfile\\.[cm]?js|pnpm-workspace\\.yaml|bunfig\\.toml|deno\\.jsonc?",
    ),
    reason: javascript,
  },
  {
    pattern: named(".+\\.config\\.[cm]?[jt]s|\\..+rc\\.[cm]?[jt]s|gulpfile\\.[cm]?[jt]s|gruntfile\\.[cm]?[jt]s"),
    reason: javascript,
  },
  { pattern: below("node_modules/\\.bin"), reason: javascript },
  {
    pattern: named(
      "pyvenv\\.cfg|.+\\.pth|conftest\\.py|(?:site|user)customize\\.py|setup\\.(?:py|cfg)|pyproject\\.toml|tox\\.ini|pytest\\.ini|noxfile\\.py",
    ),
    reason: python,
  },
  { pattern: /(?:^|\/)bin\/activate[^/]*$/, reason: python },
  {
    pattern: named(
      "(?:gnu)?makefile|.+\\.mk|\\.?justfile|taskfile\\.ya?ml|rakefile|gemfile|cmakelists\\.txt|meson\\.build|build\\.rs|gradlew(?:\\.bat)?|(?:build|settings)\\.gradle(?:\\.kts)?|pom\\.xml",
    ),
    reason: build,
  },
  { pattern: /(?:^|\/)\.(?:cargo\/config(?:\.toml)?|mvn\/.+)$/, reason: build },
  { pattern: below("\\.github/workflows|\\.github/actions|\\.circleci|\\.buildkite|\\.woodpecker"), reason: service },
  {
    pattern: named(
      "\\.gitlab-ci\\.yml|jenkinsfile|azure-pipelines\\.ya?ml|bitbucket-pipelines\\.yml|\\.travis\\.yml|\\.drone\\.ya?ml",
    ),
    reason: service,
  },
  { pattern: named("(?:dockerfile|containerfile)(?:\\..+)?|(?:docker-)?compose(?:\\..+)?\\.ya?ml"), reason: container },
  {
    pattern: named(".+\\.desktop|desktop\\.ini|.+\\.lnk"),
    reason: "A desktop may run what it names when the directory is opened, or it is clicked.",
  },
];

/** Directories of which what is in them is risky, so a link in their place is, too. */
const directories =
  /(?:^|\/)(?:\.git(?:\/hooks|\/info)?|\.husky|\.githooks|\.vscode|\.idea|\.devcontainer|\.zed|\.fleet|\.cursor|\.claude|\.gemini|\.codex|node_modules(?:\/\.bin)?|\.github(?:\/workflows|\/actions)?|\.circleci|\.buildkite|\.woodpecker|\.cargo|\.mvn)$/;

/** Says why others may run a file that code created or changed; `undefined` if no reason is known. */
export function riskOf(entry: TreeEntry, { exists, leadsOut }: Surroundings): string | undefined {
  const { type, path } = entry;
  if (type === "directory") return undefined;
  if (entry.isPrivileged === true && (entry.mode & 0o111) !== 0) {
    return "It runs with the rights of its owner or group (setuid, setgid).";
  }
  const name = path.toLowerCase();
  const kind = kinds.find(({ pattern }) => pattern.test(name));
  if (kind) return kind.reason;
  if (directories.test(name)) return "It takes the place of a directory whose files are run by others.";
  if (isInBareRepository(path, exists)) return git;
  if (type === "link" && leadsOut(path)) {
    return "It is a link that leads out of the workspace: who writes or runs it does so there.";
  }
  return undefined;
}

/** Git takes a directory with these entries for a repository, wherever it is. */
function isInBareRepository(path: string, exists: (path: string) => boolean): boolean {
  const top = /^(.*\/)?(?:config|hooks\/[^/]+)$/i.exec(path);
  return top !== null && ["HEAD", "objects", "refs"].every((name) => exists(`${top[1] ?? ""}${name}`));
}

function named(names: string): RegExp {
  return new RegExp(`(?:^|/)(?:${names})$`);
}

function below(names: string): RegExp {
  return new RegExp(`(?:^|/)(?:${names})/.+$`);
}
