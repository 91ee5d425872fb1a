"""For LangChain and LangGraph: middleware, tools, stores, histories, agents and the revise node."""
