// vfkit's API as its sources have it (pkg/rest of release v0.6.4), as far as the driver may use it. What is not here is refused, also what vfkit allows.
import type { Rule } from './rules.ts'

export const VFKIT_RULES: readonly Rule[] = [
  { method: 'GET', path: '/vm/state', phases: ['new', 'configured', 'started'] }
]
