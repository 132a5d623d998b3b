// What a program of the host is started with: little, and nothing of the operator's shell.

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The variables of a program, and those of its own. Messages are in one language, since some are read. */
export function programEnvironment (own: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { PATH, LANG: 'C', ...own }
}
