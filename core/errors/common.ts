// The errors that every plugin may answer with, so that one fault has one code everywhere.
import { defineError } from './define.ts'

/** The request breaks a rule; the message names the field and the rule. */
export const InvalidRequest = defineError('invalid_request', 'invalid', (message: string) => message)

/** @example NotFound('instance', 'web') */
export const NotFound = defineError('not_found', 'not-found', (what: string, ref: string) => `${what} ${ref} does not exist`)

/** A reference that matches more than one thing. */
export const Ambiguous = defineError('ambiguous', 'conflict', (what: string, ref: string) =>
  `${ref} matches more than one ${what}; use the full id`)

/** The request needs a plugin that is turned off. `field` is the field or path that needs it. */
export const PluginDisabled = defineError('plugin_disabled', 'invalid', (pluginId: string, field: string, state = 'not enabled on this server') =>
  `${field} needs the plugin ${pluginId}, which is ${state}`)

/** The thing exists, but its state forbids the call. */
export const InvalidState = defineError('invalid_state', 'wrong-state', (message: string) => message)

/** A name that must be unique is taken. */
export const NameConflict = defineError('name_conflict', 'conflict', (message: string) => message)
