export { createMcpServer } from "./executor-server.ts";
export type { McpServerOptions } from "./mcp-server-options.ts";
export type { ApprovedCalls } from "./connect/connected-servers.ts";
export type { McpAddress, McpCommand, McpTarget } from "./connect/mcp-target.ts";
export { createMcpHandler, type McpHandler } from "./http/create-mcp-handler.ts";
export type { McpHandlerOptions, McpSessionStart } from "./http/mcp-handler-options.ts";
export { startMcpHttpServer, type McpHttpServer, type McpHttpServerOptions } from "./http/start-mcp-http-server.ts";
