// Run instead of the plugin when it is turned off: ends nginx of an earlier server, and so all its ports.
import type { EndLeftovers } from '../../core/plugins/turned-off.ts'
import { endAll } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'

export const endLeftovers: EndLeftovers = async ({ dataDir }) => { await endAll(pathsOf(dataDir).folder) }
