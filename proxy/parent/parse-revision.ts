// Checks a policy revision, or a difference, from the control socket: it is taken only when all of it is valid.
import { isIPv4 } from 'node:net'
import { Type, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { InjectRule, PolicyChange, PolicyRevision, VmPolicy } from '../contract/control.ts'
import { parsePattern, type HostPattern } from '../contract/host-pattern.ts'
import { rangeList } from '../contract/ranges.ts'
import { HeaderClaims } from '../contract/header-claims.ts'
import { headerNameFault, isFieldValue } from '../contract/header-rules.ts'
import { MAX_VMS, PolicyFault } from '../workers/policy-fault.ts'
import { MEDIATED_MODES } from '../contract/modes.ts'

const closed = { additionalProperties: false }

const Rule = Type.Object({
  credential: Type.String({ minLength: 1, maxLength: 256 }),
  hosts: Type.Optional(Type.Array(Type.String({ maxLength: 260 }), { minItems: 1, maxItems: 256 })),
  header: Type.String({ maxLength: 256 }),
  format: Type.String({ maxLength: 4096 }),
  value: Type.String({ maxLength: 16_384 }),
  mock: Type.String({ minLength: 1, maxLength: 512 })
}, closed)

const Id = Type.String({ minLength: 1, maxLength: 128 })
// Above it a number plus one is the same number, and every later revision would be stale.
const Numbered = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Denied = Type.Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 16_384 }))

const Vm = Type.Object({
  id: Id,
  address: Type.String({ maxLength: 15 }),
  epoch: Type.String({ minLength: 1, maxLength: 128 }),
  mode: Type.Enum([...MEDIATED_MODES]),
  rules: Type.Array(Rule, { maxItems: 256 })
}, closed)

const Revision = Type.Object({
  revision: Numbered,
  denied: Denied,
  tracing: Type.Optional(Type.Object({ passTraceparent: Type.Boolean() }, closed)),
  vms: Type.Array(Vm, { maxItems: MAX_VMS })
}, closed)

const Change = Type.Object({
  base: Numbered,
  revision: Numbered,
  denied: Denied,
  vms: Type.Array(Vm, { maxItems: MAX_VMS }),
  gone: Type.Array(Id, { maxItems: MAX_VMS })
}, closed)

const FIELD = /^[A-Za-z_]\w{0,63}$/
const MAX_SHOWN = 64

/** Checks a whole revision; throws a `PolicyFault` that names the first invalid place. */
export function parseRevision (value: unknown): PolicyRevision {
  if (!Value.Check(Revision, value)) throw shapeFault(Revision, value)
  checkParts(value)
  return value
}

/** Checks a difference by itself; the caller checks whether it fits the enforced revision. */
export function parseChange (value: unknown): PolicyChange {
  if (!Value.Check(Change, value)) throw shapeFault(Change, value)
  checkParts(value)
  if (value.revision <= value.base) throw new PolicyFault('revision', 'must be above base')
  const given = new Set(value.vms.map(({ id }) => id))
  for (const [index, id] of value.gone.entries()) {
    if (given.has(id)) throw new PolicyFault(`gone[${index}]`, 'is in vms, or in gone twice')
    given.add(id)
  }
  return value
}

function shapeFault (schema: TSchema, value: unknown): PolicyFault {
  const [finding] = Value.Errors(schema, value)
  const place = placeOf(finding?.instancePath ?? '')
  return new PolicyFault(place, finding?.keyword === 'boolean' ? 'is no field of it' : finding?.message ?? 'is not a policy revision')
}

function checkParts ({ denied = [], vms }: Pick<PolicyRevision, 'denied' | 'vms'>): void {
  checkDenied(denied)
  checkUnique(vms, 'id')
  checkUnique(vms, 'address')
  for (const [index, vm] of vms.entries()) checkVm(vm, `vms[${index}]`)
}

function placeOf (pointer: string): string {
  if (pointer === '') return 'the revision'
  return pointer.slice(1).split('/').map((step, index) => /^\d+$/.test(step) ? `[${step}]` : `${index === 0 ? '' : '.'}${FIELD.test(step) ? step : quoted(step)}`).join('')
}

/** A text of somebody else for a message: bounded, and without characters that a log or a terminal would interpret. */
function quoted (step: string): string {
  return JSON.stringify(step.slice(0, MAX_SHOWN)).replace(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function checkDenied (ranges: readonly string[]): void {
  for (const [index, range] of ranges.entries()) {
    try {
      rangeList([range])
    } catch (error) {
      throw new PolicyFault(`denied[${index}]`, 'is not an address range', { cause: error })
    }
  }
}

function checkUnique (vms: readonly VmPolicy[], field: 'id' | 'address'): void {
  const seen = new Set<string>()
  for (const [index, vm] of vms.entries()) {
    if (seen.has(vm[field])) throw new PolicyFault(`vms[${index}].${field}`, 'another VM of this revision has it too')
    seen.add(vm[field])
  }
}

function checkVm (vm: VmPolicy, place: string): void {
  if (!isIPv4(vm.address)) throw new PolicyFault(`${place}.address`, 'is not an IPv4 address')
  const patterns = vm.rules.map((rule, index) => checkRule(rule, `${place}.rules[${index}]`))
  const claims = new HeaderClaims<number>()
  for (const [index, rule] of vm.rules.entries()) {
    const clash = claims.claim(rule.header, patterns[index], index)
    if (clash !== undefined) throw new PolicyFault(`${place}.rules[${index}].header`, `rule ${clash} sets the same header for the same host`)
  }
}

function checkRule (rule: InjectRule, place: string): readonly HostPattern[] | undefined {
  const fault = headerNameFault(rule.header)
  if (fault !== undefined) throw new PolicyFault(`${place}.header`, fault)
  if (!rule.format.includes('${value}')) throw new PolicyFault(`${place}.format`, 'must hold ${value}')
  if (!isFieldValue(rule.format)) throw new PolicyFault(`${place}.format`, 'holds a character that a header cannot hold, or begins or ends with white space')
  if (!isFieldValue(rule.value)) throw new PolicyFault(`${place}.value`, 'holds a character that a header cannot hold, or begins or ends with white space')
  if (!isFieldValue(rule.mock)) throw new PolicyFault(`${place}.mock`, 'holds a character that a header cannot hold, or begins or ends with white space')
  return rule.hosts?.map((host, index) => {
    const pattern = parsePattern(host)
    if (pattern === undefined) throw new PolicyFault(`${place}.hosts[${index}]`, 'must be a host name, or *. and a name of at least two labels')
    return pattern
  })
}
