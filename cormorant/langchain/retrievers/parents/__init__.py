"""How do documents and their parts get into their stores, out of them, and find each other?

``kin`` is what a parent knows of its children; ``kinship`` writes families, in one transaction
where one store keeps both, else by ``apart``; ``child_search`` searches the children;
``families`` gathers whose they are; ``parent_store`` shows it all as a vector store of parents.
"""
