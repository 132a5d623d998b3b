// Run instead of the plugin when it is turned off: the rules of an earlier server go, and whoever is connected by them is cut off.
export { endLeftovers } from './leftovers.ts'
