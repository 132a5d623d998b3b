// A gigabyte each way: see large.ts.
import { runIsolated } from '../../helpers/isolated.ts'
import { fetchImages } from './image.ts'

await runIsolated(new URL('large.js', import.meta.url), fetchImages)
