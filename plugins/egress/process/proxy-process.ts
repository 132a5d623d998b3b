// The interface to the proxy's process, for one that this server starts and for one that systemd starts.

export interface ProxyProcess {
  /** Resolves when the proxy runs as it should, after starting or replacing it where that is this server's task. @throws Error that says why it does not */
  ensure (signal: AbortSignal): Promise<void>
  /** Whether the running proxy is still as it should be. */
  isFit (): Promise<boolean>
  /** Whether a proxy of an earlier server runs, or one that is not this server's task. */
  isThere (): Promise<boolean>
  /** Ends it, where that is this server's task. */
  stop (): Promise<void>
}

/** A proxy that systemd runs: this server can only try again. */
export const externalProxy: ProxyProcess = {
  ensure: async () => {},
  isFit: async () => true,
  isThere: async () => true,
  stop: async () => {}
}
