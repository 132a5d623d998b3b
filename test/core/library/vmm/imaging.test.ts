// A capture that fails, for any VMM: what its caller hears.
import t from 'tap'
import { VmmUnreachable } from '../../../../core/library/vmm/errors.ts'
import { createImaging } from '../../../../core/library/vmm/imaging.ts'

const files = { statePath: '/state', memoryPath: '/memory' }

await t.test('a VMM that ends while it is captured is not there, which is no fault of the server\'s, and both errors are kept for its log', async (t) => {
  const gone = async (): Promise<never> => { throw VmmUnreachable('the VMM', 'ECONNREFUSED') }
  const imaging = createImaging({ memoryFile: undefined, status: async () => await Promise.resolve('running'), pause: gone, resume: gone, save: gone })
  await t.rejects(imaging.capture(files), { code: 'vmm_unreachable', statusCode: 503, message: /neither captured nor resumed/, cause: { errors: [{ code: 'vmm_unreachable' }, { code: 'vmm_unreachable' }] } })
})

await t.test('a guest that could be neither saved nor resumed for another reason is one', async (t) => {
  const fail = async (): Promise<never> => { throw new Error('no space') }
  const imaging = createImaging({ memoryFile: undefined, status: async () => await Promise.resolve('running'), pause: fail, resume: fail, save: fail })
  await t.rejects(imaging.capture(files), { name: 'AggregateError', errors: [{ message: 'no space' }, { message: 'no space' }] })
  await t.rejects(createImaging({ memoryFile: undefined, status: async () => await Promise.resolve('running'), pause: fail, resume: async () => {}, save: fail }).capture(files), { message: 'no space' })
})
