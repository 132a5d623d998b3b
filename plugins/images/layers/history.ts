// The commands that made an image's layers, from the history in its configuration, which a stranger wrote.
import { Type } from 'typebox'
import { shape } from '../../../core/json/shape.ts'
import { MOST_LAYERS } from './layers.ts'

const LONGEST_COMMAND = 500

const hasHistory = shape(Type.Object({
  rootfs: Type.Object({ diff_ids: Type.Array(Type.String()) }),
  history: Type.Array(Type.Object({ created_by: Type.Optional(Type.String()), empty_layer: Type.Optional(Type.Boolean()) }))
}))

/** The command that made each layer, `''` where none is named, from the configuration of an image; undefined when its history does not fit its layers. */
export function historyOf (configuration: unknown): readonly string[] | undefined {
  if (!hasHistory(configuration)) return undefined
  const commands = configuration.history.filter(({ empty_layer: isEmpty }) => isEmpty !== true).map(({ created_by: command }) => command ?? '')
  return commands.length === configuration.rootfs.diff_ids.length ? commands.slice(0, MOST_LAYERS).map((command) => command.slice(0, LONGEST_COMMAND)) : undefined
}
