// `berth ingress create`
import { wrongUsage } from '../failure.ts'
import type { Input } from '../input.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Ingress } from '../views.ts'

export const run: Run = async (session, input) => {
  const shared = { ...input.flag('tls') ? { tls: true } : {}, ...input.flag('redirectHttp') ? { redirect_http: true } : {}, ...headerOf(input, session.environment) }
  const rules = input.many(1).map((text) => ({ ...ruleOf(text), ...shared }))
  return await printMade(session, await (await session.api()).call<Ingress>('POST', '/ingresses', { body: { name: input.argument(0), rules, tags: input.pairs('tag') } }))
}

/** `HOST[:PORT][/PATH]=INSTANCE:PORT`. The server decides which hosts and paths are valid. */
export function ruleOf (text: string): object {
  const at = text.lastIndexOf('=')
  const [from, to] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)]
  const slash = from.indexOf('/')
  const place = slash < 0 ? from : from.slice(0, slash)
  const [hostname = '', port, ...more] = place.split(':')
  const colon = to.lastIndexOf(':')
  const targetPort = to.slice(colon + 1)
  const isKnown = hostname !== '' && (port === undefined || isNumber(port)) && more.length === 0 && colon > 0 && isNumber(targetPort)
  if (!isKnown) throw wrongUsage(`${text} is not HOST[:PORT][/PATH]=INSTANCE:PORT`, 'write it like shop.example.com=web:8080')
  return { match: { hostname, ...port === undefined ? {} : { port: Number(port) }, ...slash < 0 ? {} : { path: from.slice(slash) } }, target: { instance: to.slice(0, colon), port: Number(targetPort) } }
}

/** The value comes from a variable, so that it is on no command line. */
function headerOf (input: Input, environment: NodeJS.ProcessEnv): object {
  const text = input.text('headerAuth')
  if (text === undefined) return {}
  const [header = '', name = '', ...more] = text.split('=')
  if (header === '' || name === '' || more.length > 0) throw wrongUsage(`--header-auth: ${text} is not HEADER=ENV`)
  const value = environment[name]
  if (value === undefined || value === '') throw wrongUsage(`--header-auth: the variable ${name} is not set here`)
  return { request_header_auth: { header, value } }
}

function isNumber (text: string): boolean {
  return /^\d{1,5}$/.test(text)
}
