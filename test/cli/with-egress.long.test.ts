// What a real VM sends out by its credentials, as the command has it made and tells it: see with-egress.ts.
import { runIsolated } from '../helpers/isolated.ts'
import { fetchImages } from '../integration/egress/image.ts'

await runIsolated(new URL('with-egress.js', import.meta.url), fetchImages)
