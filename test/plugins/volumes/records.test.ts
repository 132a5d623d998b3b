// Records of an archive that say something about what follows, and are no content.
// Own process: it measures the memory of buffers.
import t from 'tap'
import { Blocks } from '../../../plugins/volumes/archive/blocks.ts'
import { readTar } from '../../../plugins/volumes/archive/tar.ts'
import { end, entry, pax } from '../../helpers/raw-tar.ts'

t.test('records for all of an archive take no memory when nobody reads them', async (t) => {
  const value = 'v'.repeat(250_000)
  let mostBytes = 0
  const source = async function * (): AsyncGenerator<Buffer> {
    for (let round = 0; round < 100; round++) {
      for (let count = 0; count < 16; count++) yield * pax({ [`comment.${round}.${count}`]: value }, undefined, 'g')
      yield entry({ path: 'file' })
    }
    yield end
  }
  await readTar(new Blocks(source(), 2 ** 30, () => new Error('too long')), async () => { mostBytes = Math.max(mostBytes, process.memoryUsage().arrayBuffers) })
  t.ok(mostBytes < 2 ** 27, `${mostBytes} bytes`)
})
