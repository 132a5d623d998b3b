// Where the credentials of a real machine are, and where they are not: see secrets.ts.
import { runIsolated } from '../../helpers/isolated.ts'
import { fetchImages } from './image.ts'

await runIsolated(new URL('secrets.js', import.meta.url), fetchImages)
