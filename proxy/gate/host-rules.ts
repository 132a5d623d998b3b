// What one VM's policy means for one host: the headers to set, and the secrets that must not come back.
import type { InjectRule, TracingPolicy, VmPolicy } from '../contract/control.ts'
import { headerKey } from '../contract/header-rules.ts'
import { compileRules, mostPrecise, type CompiledRule } from '../contract/precise-rules.ts'
import { echoesOf, namesakesOf, type Echo } from './echo-forms.ts'

export interface Injection {
  readonly header: string
  /** the name as `headerKey` gives it */
  readonly key: string
  readonly value: string
}

export interface HostRules {
  readonly injections: readonly Injection[]
  /** keys of the headers that the rules set; guests' own lines of these are dropped */
  readonly keys: ReadonlySet<string>
  /** names of the credentials, for the log */
  readonly credentials: readonly string[]
  /** in the order in which they are to be replaced */
  readonly echoes: readonly Echo[]
  /** length of the shortest of them: most of what an origin sends is shorter, and not searched */
  readonly shortestEcho: number
  /** the echoes in lower case as a name of a header may hold them, the shortest first */
  readonly namesakes: readonly string[]
  /** whether a credential of this host has no value at the moment: the request must fail rather than go out without it */
  readonly unavailable: boolean
}

export const NO_RULES: HostRules = { injections: [], keys: new Set(), credentials: [], echoes: [], shortestEcho: Infinity, namesakes: [], unavailable: false }

const MAX_CACHED_HOSTS = 1024

/** One VM's policy of one revision, compiled. It never changes, so that a reader never sees half of a new one. */
export class CompiledPolicy {
  readonly source: VmPolicy
  readonly revision: number
  /** absent: the server takes no traces */
  readonly tracing: TracingPolicy | undefined
  readonly #rules: readonly CompiledRule[]
  readonly #byHost = new Map<string, HostRules>()

  constructor (source: VmPolicy, revision: number, tracing?: TracingPolicy) {
    this.source = source
    this.revision = revision
    this.tracing = tracing
    this.#rules = compileRules(source.rules)
  }

  /** The rules for a canonical host name. They apply to requests over TLS only. */
  rulesFor (host: string): HostRules {
    const known = this.#byHost.get(host)
    if (known !== undefined) return known
    // A guest can ask for any number of hosts; a forgotten host is only compiled again.
    if (this.#byHost.size >= MAX_CACHED_HOSTS) this.#byHost.clear()
    const rules = this.#compile(host)
    this.#byHost.set(host, rules)
    return rules
  }

  #compile (host: string): HostRules {
    const matching = mostPrecise(this.#rules, host)
    if (matching.length === 0) return NO_RULES
    const injections = matching.map(rule => ({ header: rule.header, key: headerKey(rule.header), value: render(rule) }))
    const echoes = echoesOf(matching)
    return {
      injections,
      keys: new Set(injections.map(injection => injection.key)),
      credentials: [...new Set(matching.map(rule => rule.credential))],
      echoes,
      shortestEcho: echoes.at(-1)?.text.length ?? Infinity,
      namesakes: namesakesOf(echoes),
      unavailable: matching.some(rule => rule.value === '')
    }
  }
}

function render (rule: InjectRule): string {
  return rule.format.split('${value}').join(rule.value)
}
