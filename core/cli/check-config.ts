// `berth check-config`: says whether a configuration can be used, and starts nothing.
import { parseArgs } from 'node:util'
import { isMapping } from '../config/json-schema.ts'
import { ConfigError, resolveConfig } from '../config/resolve.ts'
import { builtInFolder } from '../plugins/discover.ts'
import type { Command } from './command.ts'
import { findConfig } from './find-config.ts'

export const checkConfig: Command = {
  async run (args, { environment, print }) {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } })
    const { source, origin } = await findConfig(values.config, environment)
    const { config, plugins, disabled } = await resolveConfig(source, { environment, builtIns: builtInFolder })
    const reports = await Promise.all(plugins.map(async plugin => {
      const settings = config.plugins[plugin.manifest.id]?.config
      return isMapping(settings) ? await plugin.check?.(settings, source.folder) : undefined
    }))
    const problems = reports.flatMap(report => report?.problems ?? [])
    if (problems.length > 0) throw new ConfigError(problems)
    for (const file of [origin, ...reports.flatMap(report => report?.files ?? [])]) print(`${file}: OK`)
    print(`plugins, in start order: ${plugins.map(plugin => plugin.manifest.id).join(', ') || 'none'}`)
    if (disabled.length > 0) print(`turned off: ${disabled.join(', ')}`)
    return 0
  }
}
