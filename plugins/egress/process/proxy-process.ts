// What the rest of the plugin knows of the proxy's process: one that this server starts, or one that systemd does.

export interface ProxyProcess {
  /** The proxy runs as it should: started or replaced where that is this server's task. @throws Error that says why not */
  ensure (signal: AbortSignal): Promise<void>
  /** Whether the one that runs is still as it should be. */
  isFit (): Promise<boolean>
  /** Whether one runs that an earlier server has started, or that is not this server's affair. */
  isThere (): Promise<boolean>
  /** Ends it, where that is this server's task. */
  stop (): Promise<void>
}

/** A proxy that systemd starts and keeps: all that can be done is to try again. */
export const externalProxy: ProxyProcess = {
  ensure: async () => {},
  isFit: async () => true,
  isThere: async () => true,
  stop: async () => {}
}
