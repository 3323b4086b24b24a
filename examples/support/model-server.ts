// Named by a relative path, so that it stands below the imports that READMEs show.
export { startOpenAIServer } from "@fenced/test-support/openai-server";
