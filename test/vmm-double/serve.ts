// A double's API on its unix socket: each request is judged by the VMM's document, then obeyed, or refused in the VMM's own words and form.
import { createServer } from 'node:http'
import { judge, type Phase, type Rule } from './rules.ts'

/** What a double answers in the place of what was asked for. */
export class Fault extends Error {
  readonly status: number
  constructor (message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export interface Api {
  readonly rules: readonly Rule[]
  /** in front of each path */
  readonly prefix?: string
  readonly phase: () => Phase
  /** @param call method and path as the rule has them @param name what stands for `*` @throws Fault */
  readonly obey: (call: string, name: string, body: Record<string, unknown>) => object | undefined
  readonly refusal: (message: string) => unknown
}

export function serve (socket: string, { rules, prefix = '', phase, obey, refusal }: Api): void {
  createServer((request, response) => {
    const { method = '', url = '' } = request
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => { parts.push(part) })
    request.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8')
      try {
        if (!url.startsWith(prefix)) throw new Fault(`there is nothing at ${url}`, 404)
        const verdict = judge(rules, phase(), method, url.slice(prefix.length), text)
        if ('why' in verdict) throw new Fault(verdict.why, verdict.status)
        const result = obey(`${method} ${verdict.rule.path}`, verdict.name, verdict.body)
        response.writeHead(result === undefined ? 204 : 200, { 'content-type': 'application/json' }).end(result === undefined ? undefined : JSON.stringify(result))
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        // For whoever reads the log: an error of the driver's, or one that a test has asked for.
        console.error(`double: ${method} ${url} ${text}: ${error.message}`)
        response.writeHead(error.status, { 'content-type': 'application/json' }).end(JSON.stringify(refusal(error.message)))
      }
    })
  }).listen(socket)
}
