// The errors of the egress plugin.
import { defineError } from '../../core/errors/define.ts'

/** The proxy does not run, or did not take a policy in time. */
export const EgressUnavailable = defineError('egress_unavailable', 'unavailable', (why: string) => `the egress proxy is not available: ${why}`)
