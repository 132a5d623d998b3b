// Colours, only on a terminal and only without NO_COLOR (https://no-color.org).

const CODES = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const

export type Style = (colour: keyof typeof CODES, text: string) => string

export function createStyle (isTerminal: boolean, environment: NodeJS.ProcessEnv, wanted: boolean): Style {
  const noColor = environment['NO_COLOR']
  const on = wanted && isTerminal && (noColor === undefined || noColor === '') && environment['TERM'] !== 'dumb'
  return (colour, text) => on ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text
}
