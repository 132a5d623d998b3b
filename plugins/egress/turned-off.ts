// Run instead of the plugin when it is turned off: ends the proxy of an earlier server, which would go on to put in credentials that nobody can change or revoke any more.
import type { EndLeftovers } from '../../core/plugins/turned-off.ts'
import { endAllOfOwner } from './process/end-all.ts'
import { pathsOf } from './process/paths.ts'

export const endLeftovers: EndLeftovers = async ({ dataDir }) => { await endAllOfOwner(pathsOf(dataDir)) }
