// The environment of this process: the one place of the client that reads it.

/** The variables that the client reads, for the help. */
export const VARIABLES: readonly (readonly [name: string, meaning: string])[] = [
  ['BERTH_URL', 'address of the server'],
  ['BERTH_TOKEN', 'key of that server'],
  ['BERTH_CONTEXT', 'name of a server that was logged in to'],
  ['BERTH_CA', 'file with the authority of the server\'s certificate'],
  ['BERTH_CONTEXTS', 'file that log-ins are kept in (~/.config/berth/contexts.json)'],
  ['NO_COLOR', 'no colours']
]

export function processEnvironment (): NodeJS.ProcessEnv {
  return process.env
}
