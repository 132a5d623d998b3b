// Run instead of the plugin when it is turned off: removes the rules of an earlier server, and ends their connections.
export { endLeftovers } from './leftovers.ts'
