// Run instead of the plugin when it is turned off: nginx of an earlier server ends, and with it every port.
import type { EndLeftovers } from '../../core/plugins/turned-off.ts'
import { endAll } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'

export const endLeftovers: EndLeftovers = async ({ dataDir }) => { await endAll(pathsOf(dataDir).folder) }
