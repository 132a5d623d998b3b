// A file of tests of which nothing can run here is skipped as a whole, before it begins.

/** Ends the process with that result; goes on when there is no reason. */
export async function skipFile (reason: string | false): Promise<void> {
  if (reason === false) return
  await new Promise((resolve) => process.stdout.write(`TAP version 14\n1..0 # SKIP ${reason}\n`, resolve))
  process.exit(0)
}
