// The error text for a failed command of a build: buildah's last message, the cause behind it, and the last lines of the step.

export interface Circumstances {
  readonly exitCode: number
  /** of the output */
  readonly last: readonly string[]
  readonly memoryBytes: number
  /** number of the VM's processes that the kernel has killed for want of memory */
  readonly oomKills: number
  readonly isIsolated: boolean
  readonly readsRegistry: boolean
}

const FETCHING = /initializing source|pinging container registry|reading manifest|no such image|unable to copy from source/i
const NO_SPACE = /no space left on device/i
const NO_DOCKERFILE = /no such file or directory.*Dockerfile|Dockerfile.*no such file/i
const DENIED = /denied|requested access/i

/** @param action what failed, such as `the build` */
export function describeFailure (action: string, about: Circumstances): string {
  const error = about.last.findLast((line) => line.startsWith('Error: '))?.slice('Error: '.length)
  const lines = about.last.filter((line) => line !== `Error: ${error ?? ''}`)
  return [
    `${action} failed: ${error ?? `buildah ended with ${about.exitCode}`}`,
    ...hints(about, about.last.join('\n')),
    ...lines.length === 0 ? [] : ['Last lines:', ...lines]
  ].join('\n')
}

function hints (about: Circumstances, text: string): string[] {
  const found: string[] = []
  if (about.oomKills > 0) found.push(`A step ran out of memory: the build had ${Math.floor(about.memoryBytes / 2 ** 20)} MB. Raise memory_mb.`)
  if (NO_SPACE.test(text)) found.push('The disk of the build is full.')
  if (NO_DOCKERFILE.test(text)) found.push('Is the path of the Dockerfile right?')
  if (FETCHING.test(text)) {
    if (DENIED.test(text) && !about.readsRegistry) found.push('The key that started this build may not read images (image:read), so its base images cannot come from the built-in registry.')
    else if (about.isIsolated) found.push('This build has no network (network_mode isolated): its base images must have been pushed to the built-in registry. An image that was only pulled there has no layers to build upon.')
  }
  return found
}
