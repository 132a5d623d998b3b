// Checks requests against a VMM's published API document, written down as schemas: method, path, fields with their types and limits, and the phase of the VM that each belongs to.
import type { TSchema } from 'typebox'
import { Value } from 'typebox/value'

/** `new`: nothing was asked for yet; `configured`: something was, and the guest does not run; `started`: it runs or is paused. */
export type Phase = 'new' | 'configured' | 'started'

export interface Rule {
  readonly method: string
  /** `*` stands for one name */
  readonly path: string
  readonly phases: readonly Phase[]
  /** absent: the request has no body */
  readonly body?: TSchema
  /** the field that repeats the name in the path */
  readonly named?: string
}

export type Verdict = { readonly rule: Rule, readonly name: string, readonly body: Record<string, unknown> } | { readonly status: number, readonly why: string }

export function judge (rules: readonly Rule[], phase: Phase, method: string, path: string, text: string): Verdict {
  const found = rules.map((rule) => ({ rule, name: nameIn(rule.path, path) })).find(({ rule, name }) => rule.method === method && name !== undefined)
  if (found === undefined) return { status: 400, why: `Invalid request method and/or path: ${method} ${path}.` }
  const { rule, name = '' } = found
  let body: Record<string, unknown> = {}
  if (rule.body === undefined) {
    if (text !== '') return { status: 400, why: `${method} request cannot have a body.` }
  } else {
    try {
      body = JSON.parse(text)
    } catch (error) {
      return { status: 400, why: `An error occurred when deserializing the json body of a request: ${String(error)}.` }
    }
    const [problem] = Value.Errors(rule.body, body)
    if (problem !== undefined) return { status: 400, why: `An error occurred when deserializing the json body of a request: ${problem.instancePath} ${problem.message}: ${text}` }
    if (rule.named !== undefined && body[rule.named] !== name) return { status: 400, why: 'The id from the path does not match the id from the body!' }
  }
  if (!rule.phases.includes(phase)) return { status: 400, why: wrongPhase(rule, phase) }
  return { rule, name, body }
}

function nameIn (pattern: string, path: string): string | undefined {
  if (!pattern.endsWith('*')) return pattern === path ? '' : undefined
  const start = pattern.slice(0, -1)
  const name = path.slice(start.length)
  return path.startsWith(start) && name !== '' && !name.includes('/') ? name : undefined
}

function wrongPhase ({ phases }: Rule, phase: Phase): string {
  if (phases.length === 1 && phases[0] === 'new') return 'Load snapshot error: Loading a microVM snapshot not allowed after configuring boot-specific resources.'
  return `The requested operation is not supported ${phase === 'started' ? 'after' : 'before'} starting the microVM.`
}
