// Paths in the build's VM.

/** the disk of the build, or of its builder */
export const MOUNT = '/build'
/** the same disk at the path of buildah's storage, which no volume of an instance may have */
export const DISK = '/var/lib/containers'
export const STORE = `${DISK}/storage`
/** the files of this build alone */
export const WORK = `${DISK}/berth`
export const SOURCE = `${WORK}/source`
export const TEMPORARY = `${WORK}/tmp`
/** a Dockerfile that is not part of the source */
export const DOCKERFILE = `${WORK}/Dockerfile`
export const DIGEST_FILE = `${WORK}/digest`
/** in memory, and invisible to steps: a step sees only what it mounts */
export const MEMORY = '/run'
export const SECRETS = `${MEMORY}/berth-secrets`
/** buildah's name for the built image */
export const BUILT = 'berth.internal/build:latest'
