// What one VM's policy means for one host: the headers to set, and the secrets that must not come back.
import type { InjectRule, TracingPolicy, VmPolicy } from '../contract/control.ts'
import { headerKey } from '../contract/header-rules.ts'
import { compileRules, mostPrecise, type CompiledRule } from '../contract/precise-rules.ts'

export interface Injection {
  readonly header: string
  /** the name as `headerKey` gives it */
  readonly key: string
  readonly value: string
}

/** A text that contains a secret, and its replacement. */
export interface Echo {
  readonly text: string
  readonly mock: string
}

export interface HostRules {
  readonly injections: readonly Injection[]
  /** keys of the headers that the rules set; guests' own lines of these are dropped */
  readonly keys: ReadonlySet<string>
  /** names of the credentials, for the log */
  readonly credentials: readonly string[]
  readonly echoes: readonly Echo[]
  /** whether a credential of this host has no value at the moment: the request must fail rather than go out without it */
  readonly unavailable: boolean
}

export const NO_RULES: HostRules = { injections: [], keys: new Set(), credentials: [], echoes: [], unavailable: false }

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
    return {
      injections,
      keys: new Set(injections.map(injection => injection.key)),
      credentials: [...new Set(matching.map(rule => rule.credential))],
      echoes: matching.flatMap(echoesOf),
      unavailable: matching.some(rule => rule.value === '')
    }
  }
}

function render (rule: InjectRule): string {
  return rule.format.split('${value}').join(rule.value)
}

/** The forms in which origins are known to send a secret back: as it is, percent-encoded, and in base64 at each of the three offsets in a longer text. */
function echoesOf (rule: InjectRule): Echo[] {
  if (rule.value === '') return []
  const texts = new Set([rule.value, encodeURIComponent(rule.value), ...base64Forms(rule.value)])
  // The longest first: otherwise a part of a text would be replaced before the whole is found.
  return [...texts].filter(text => text !== '').sort((a, b) => b.length - a.length).map(text => ({ text, mock: rule.mock }))
}

/** The base64 of the secret at each offset, without the characters that depend on the neighbouring bytes. */
function base64Forms (value: string): string[] {
  const bytes = Buffer.from(value, 'latin1')
  // Shorter values leave too few characters to be recognized.
  if (bytes.length < 6) return []
  const forms = [0, 1, 2].map(offset => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes])
    const first = offset === 0 ? 0 : offset + 1
    return padded.toString('base64').slice(first, Math.floor(padded.length * 8 / 6))
  })
  return [...forms, ...forms.map(form => form.replaceAll('+', '-').replaceAll('/', '_'))]
}
