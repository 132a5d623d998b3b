// All that a user does with a machine, from its creation to an image that was built, once each: see journey/journey.ts.
import { runIsolated } from '../helpers/isolated.ts'
import { fetchImages } from './builds/egress-images.ts'

await runIsolated(new URL('journey/journey.js', import.meta.url), fetchImages)
