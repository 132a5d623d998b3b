// Why this server has no driver of a name. GET /capabilities and every call that needs the driver say it in the same words.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { BerthError } from '../../../core/errors/define.ts'
import type { PluginReports } from '../../../core/plugins/reports.ts'

type Reports = Pick<PluginReports, 'get'>

/** One sentence. */
export function whyAbsent (name: string, plugins: Reports): string {
  const id = idOf(name)
  const state = stateOf(id, plugins)
  return state === undefined ? `this server has no plugin ${id}` : `the plugin ${id} is ${state}`
}

/** @param field the request's field that asks for the hypervisor */
export function hypervisorAbsent (name: string, field: string, plugins: Reports): BerthError {
  const id = idOf(name)
  return PluginDisabled(id, field, stateOf(id, plugins))
}

function idOf (name: string): string {
  return `hypervisor-${name}`
}

/** undefined for an unknown plugin */
function stateOf (id: string, plugins: Reports): string | undefined {
  const report = plugins.get(id)
  if (report === undefined) return undefined
  return report.reason === undefined ? report.state : `${report.state}: ${report.reason}`
}
