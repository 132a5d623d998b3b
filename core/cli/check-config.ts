// `berth check-config`: says whether a configuration can be used, and starts nothing.
import { parseArgs } from 'node:util'
import { resolveConfig } from '../config/resolve.ts'
import { builtInFolder } from '../plugins/discover.ts'
import type { Command } from './command.ts'
import { findConfig } from './find-config.ts'

export const checkConfig: Command = {
  async run (args, { environment, print }) {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' } } })
    const { source, origin } = await findConfig(values.config, environment)
    const { plugins, disabled } = await resolveConfig(source, { environment, builtIns: builtInFolder })
    print(`${origin}: OK`)
    print(`plugins, in start order: ${plugins.map(plugin => plugin.manifest.id).join(', ') || 'none'}`)
    if (disabled.length > 0) print(`turned off: ${disabled.join(', ')}`)
    return 0
  }
}
