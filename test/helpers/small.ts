/** What a machine of a test has: small enough that several run side by side under emulation. Templates of this shape are there: prepared-templates. */
export const SMALL = { size: '128MB', vcpus: 1, overlay_size: '256MB' } as const
