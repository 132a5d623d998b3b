// Calls that change nothing.
import { plainCall, VMS, type Choose } from './action.ts'

const PATHS = ['/instances', '/snapshots', '/volumes', '/images', '/builds', '/builders', '/ports', '/ingresses', '/webhooks', '/resources', '/events/snapshot', '/health', '/capabilities', '/plugins'] as const
const OF_INSTANCES = ['', '/stats', '/logs?tail=50', '/egress', '/auto-standby/status', '/ports', '/wait?state=Running&timeout=2s', '/stat?path=/etc/passwd'] as const

export const list: Choose = (random) => {
  const path = random.pick(PATHS)
  return plainCall(`read ${path}`, 'GET', path)
}

export const look: Choose = (random) => {
  const path = `/instances/${random.pick(VMS)}${random.pick(OF_INSTANCES)}`
  return plainCall(`read ${path}`, 'GET', path)
}
