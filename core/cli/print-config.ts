// `berth print-config`: the whole configuration as the server would use it, with secrets masked.
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { documentDefaults } from '../config/document.ts'
import { jsonSchema } from '../config/json-schema.ts'
import { maskSecrets } from '../config/mask.ts'
import { resolveConfig, type ResolvedConfig } from '../config/resolve.ts'
import { sourceOfValue } from '../config/source.ts'
import { builtInFolder } from '../plugins/discover.ts'
import type { Command } from './command.ts'
import { findConfig } from './find-config.ts'

export const printConfig: Command = {
  async run (args, { environment, print }) {
    const { values } = parseArgs({ args: [...args], options: { config: { type: 'string' }, defaults: { type: 'boolean', default: false } } })
    if (values.defaults) {
      const { schema } = await resolveConfig(sourceOfValue({}, process.cwd()), { environment: {}, builtIns: builtInFolder })
      print(documentDefaults(jsonSchema(schema)).trimEnd())
      return 0
    }
    const { source, origin } = await findConfig(values.config, environment)
    print(`# from ${origin}`)
    print(printable(await resolveConfig(source, { environment, builtIns: builtInFolder })))
    return 0
  }
}

/** As YAML. The config of a plugin that is turned off is left out: without its schema nobody knows which of its values are secret. */
export function printable ({ config, schema, disabled }: ResolvedConfig): string {
  const plugins = Object.fromEntries(Object.entries(config.plugins).map(([id, entry]) => {
    const { config: _unread, ...rest } = entry
    return [id, disabled.includes(id) ? rest : entry]
  }))
  return stringify(maskSecrets(jsonSchema(schema), { ...config, plugins })).trimEnd()
}
