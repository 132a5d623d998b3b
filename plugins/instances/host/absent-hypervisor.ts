// Why this server has no driver of a name. GET /capabilities and every call that needs the driver say it in the same words.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { BerthError } from '../../../core/errors/define.ts'
import type { PluginReport, PluginReports } from '../../../core/plugins/reports.ts'

/** The plugin of a driver has the driver's name behind this. */
const PREFIX = 'hypervisor-'

/** The hypervisors whose plugin is in this server and has not started, each with the reason in one sentence. */
export function absentHypervisors (present: ReadonlyMap<string, unknown>, plugins: Pick<PluginReports, 'list'>): Array<{ readonly name: string, readonly reason: string }> {
  return plugins.list().flatMap((report) => {
    const { id, state } = report
    const name = id.startsWith(PREFIX) ? id.slice(PREFIX.length) : undefined
    return name === undefined || state === 'started' || present.has(name) ? [] : [{ name, reason: `the plugin ${id} is ${textOf(report)}` }]
  })
}

/** @param field the request's field that asks for the hypervisor */
export function hypervisorAbsent (name: string, field: string, plugins: Pick<PluginReports, 'get'>): BerthError {
  const id = PREFIX + name
  const report = plugins.get(id)
  return PluginDisabled(id, field, report === undefined ? undefined : textOf(report))
}

function textOf ({ state, reason }: PluginReport): string {
  return reason === undefined ? state : `${state}: ${reason}`
}
