// Checks the systemd units of an installed server.
import { access } from 'node:fs/promises'
import type { Look } from './check.ts'
import { findTool, runTool, type ToolPath } from './tools.ts'

const UNITS = ['berth.service', 'berth-network.service', 'berth-egress.service', 'berth-egress.socket']

export async function units (place: ToolPath): Promise<Look> {
  const systemctl = await findTool('systemctl', place)
  const isSystemd = await access('/run/systemd/system').then(() => true, () => false)
  if (systemctl === undefined || !isSystemd) return { verdict: 'ok', found: 'this host does not run systemd' }
  const { out } = await runTool(systemctl, ['show', '--property=Id,LoadState,ActiveState', ...UNITS])
  return unitStates(out)
}

/** @param shown the output of `systemctl show` for Id, LoadState and ActiveState */
export function unitStates (shown: string): Look {
  const all = shown.trim().split(/\n\n+/).map((block) => Object.fromEntries(block.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])))
  const installed = all.filter((unit) => unit['LoadState'] === 'loaded')
  if (installed.length === 0) return { verdict: 'ok', found: 'not installed as a service' }
  // The proxy is started by its sockets, when the first guest needs it.
  const ended = installed.filter((unit) => unit['ActiveState'] === 'failed' || (unit['ActiveState'] !== 'active' && unit['Id'] !== 'berth-egress.service'))
  const found = installed.map((unit) => `${unit['Id'] ?? ''} ${unit['ActiveState'] ?? ''}`).join(', ')
  const [first] = ended
  return first === undefined ? { verdict: 'ok', found } : { verdict: 'failed', found, remedy: `systemctl status ${first['Id'] ?? ''}; journalctl -u ${first['Id'] ?? ''}` }
}
