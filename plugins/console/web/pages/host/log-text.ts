// A line of the server's log as text of one line, and the steps of its error below it.
export interface HostLogLine { readonly id: string, readonly time: string, readonly level: string, readonly message: string, readonly fields: Readonly<Record<string, unknown>> }

const LONGEST = 4000
const MOST_STEPS = 30
const TIME: Intl.DateTimeFormatOptions = { month: 'short', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hour12: false }
/** They would end the line, be invisible, or let text be read in another order than it has. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

export function linesOf ({ time, level, message, fields: { plugin, pid: _pid, err, ...fields } }: HostLogLine): string[] {
  const { stack, ...fault } = isRecord(err) ? err : { stack: undefined, message: err }
  const rest = [...Object.entries(fields), ...err === undefined ? [] : [['err', typeof fault['message'] === 'string' ? fault['message'] : fault] as const]]
  const facts = rest.map(([key, value]) => `${key}=${typeof value === 'string' && /^[\w.:/@-]+$/.test(value) ? value : JSON.stringify(value)}`)
  const steps = typeof stack === 'string' ? stack.split('\n').slice(1, MOST_STEPS).map((step) => `      ${step.trim()}`) : []
  return [[new Date(time).toLocaleString(undefined, TIME), level.toUpperCase().padEnd(5), ...typeof plugin === 'string' ? [`[${plugin}]`] : [], message, ...facts].join(' '), ...steps].map(plain)
}

function plain (text: string): string {
  const seen = text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`)
  return seen.length > LONGEST ? `${seen.slice(0, LONGEST)} …` : seen
}

function isRecord (value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
