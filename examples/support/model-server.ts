// Imported with a relative path, so that it sorts after the imports that READMEs show.
export { startOpenAIServer } from "@fenced/test-support/openai-server";
