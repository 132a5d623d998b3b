// The errors of the resources plugin.
import { defineError } from '../../core/errors/define.ts'

export const InsufficientResources = defineError('insufficient_resources', 'conflict', (short: readonly string[]) =>
  `this host has no room for that: ${short.join('; ')}`)
