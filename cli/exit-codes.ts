// The exit codes of the client's commands. `run` and `exec` end with the program's own code, or with 124 to 127 as docker does.

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  conflict: 5,
  unreachable: 6,
  /** a timeout: what the command waited for did not happen in time */
  timeout: 124,
  /** `run` and `exec`: Berth failed, not the program */
  berthFailed: 125,
  interrupted: 130
} as const

export const EXIT_MEANINGS: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'done'],
  ['1', 'the command failed'],
  ['2', 'the command line is wrong'],
  ['3', 'what was named does not exist'],
  ['4', 'no key, an unknown key, or a key without the scope'],
  ['5', 'the state of things forbids it: a name that is taken, an instance that does not run'],
  ['6', 'the server cannot be reached, or went away in the middle'],
  ['124', 'what was waited for did not come in time'],
  ['125', 'run and exec: Berth failed, not the program'],
  ['126, 127', 'run and exec: the program cannot be executed, or does not exist'],
  ['130', 'ended by Ctrl-C'],
  ['other', 'run and exec: the exit code of the program']
]
