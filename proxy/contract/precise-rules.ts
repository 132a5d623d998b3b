// Which rules of a policy apply to a host.
import type { InjectRule } from './control.ts'
import { headerKey } from './header-rules.ts'
import { matchesPattern, parsePattern, type HostPattern } from './host-pattern.ts'

const NO_MATCH = -1

export interface CompiledRule {
  readonly rule: InjectRule
  /** absent: every host */
  readonly patterns: readonly HostPattern[] | undefined
}

export function compileRules (rules: readonly InjectRule[]): readonly CompiledRule[] {
  return rules.map((rule) => ({ rule, patterns: rule.hosts?.map((host) => parsePattern(host)).filter((pattern) => pattern !== undefined) }))
}

/** The rules that apply to a host: for each header, the most precise rule. A policy with two rules of equal precision is refused. */
export function mostPrecise (rules: readonly CompiledRule[], host: string): InjectRule[] {
  const best = new Map<string, { readonly rule: InjectRule, readonly precision: number }>()
  for (const { rule, patterns } of rules) {
    const precision = precisionOf(patterns, host)
    const key = headerKey(rule.header)
    if (precision > (best.get(key)?.precision ?? NO_MATCH)) best.set(key, { rule, precision })
  }
  return [...best.values()].map(({ rule }) => rule)
}

/** How precisely patterns name a host: an exact name before a wildcard, any pattern before all hosts. */
function precisionOf (patterns: readonly HostPattern[] | undefined, host: string): number {
  if (patterns === undefined) return 0
  return Math.max(NO_MATCH, ...patterns.filter((pattern) => matchesPattern(pattern, host)).map(({ wildcard }) => wildcard ? 1 : 2))
}
