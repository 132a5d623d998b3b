// The environment of host programs: small, with nothing of the operator's shell.

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The common variables and the program's own. Messages are in one language, since some are parsed. */
export function programEnvironment (own: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { PATH, LANG: 'C', ...own }
}
