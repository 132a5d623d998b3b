// Where things are in the build's VM.

/** the disk of the build, or of its builder */
export const MOUNT = '/build'
/** the same where buildah keeps all that it has, which is a place that no volume of an instance may have */
export const DISK = '/var/lib/containers'
export const STORE = `${DISK}/storage`
/** what belongs to this build alone */
export const WORK = `${DISK}/berth`
export const SOURCE = `${WORK}/source`
export const TEMPORARY = `${WORK}/tmp`
/** a Dockerfile that is not in the source */
export const DOCKERFILE = `${WORK}/Dockerfile`
export const DIGEST_FILE = `${WORK}/digest`
/** in memory, and in no step's sight: a step sees only what it mounts */
export const MEMORY = '/run'
export const SECRETS = `${MEMORY}/berth-secrets`
/** buildah's name for what it has built */
export const BUILT = 'berth.internal/build:latest'
