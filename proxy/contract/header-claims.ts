// Finds two rules that set the same header for the same host. A VM may have 65,536 patterns of hosts: each is looked up, never compared with all others.
import type { HostPattern } from './host-pattern.ts'
import { headerKey } from './header-rules.ts'

/** The claims of one VM's rules; `T` is the caller's type for a rule. */
export class HeaderClaims<T> {
  readonly #headers = new Map<string, HostClaims<T>>()

  /**
   * Gives a rule its header for the hosts that its patterns match, or for every host when there are none.
   * @returns an earlier rule that sets the same header with the same precision for one of these hosts: the order of the two would decide which one sets it
   */
  claim (header: string, patterns: readonly HostPattern[] | undefined, rule: T): T | undefined {
    const key = headerKey(header)
    const hosts = this.#headers.get(key) ?? new HostClaims<T>()
    this.#headers.set(key, hosts)
    const other = hosts.find(patterns)
    if (other === undefined) hosts.add(patterns, rule)
    return other
  }
}

/** The claims for one header. A wildcard stands for one label, so two different wildcards never match the same host. */
class HostClaims<T> {
  /** the rule for every host */
  #every: T | undefined
  readonly #exact = new Map<string, T>()
  readonly #wildcard = new Map<string, T>()

  find (patterns: readonly HostPattern[] | undefined): T | undefined {
    if (patterns === undefined) return this.#every
    for (const { name, wildcard } of patterns) {
      const found = (wildcard ? this.#wildcard : this.#exact).get(name)
      if (found !== undefined) return found
    }
    return undefined
  }

  add (patterns: readonly HostPattern[] | undefined, rule: T): void {
    if (patterns === undefined) this.#every = rule
    for (const { name, wildcard } of patterns ?? []) (wildcard ? this.#wildcard : this.#exact).set(name, rule)
  }
}
