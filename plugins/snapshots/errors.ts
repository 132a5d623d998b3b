// The errors of the snapshots plugin, beside those that every plugin shares.
import { defineError } from '../../core/errors/define.ts'

export const DiskFull = defineError('insufficient_resources', 'conflict', () =>
  'snapshot: the disk of the data folder is full; nothing was changed')
