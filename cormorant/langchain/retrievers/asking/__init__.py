"""How is a language model asked, and what did it say?

``chain`` puts prompt, model and parser together; ``answers`` reads the reply as text; ``chatter``
knows the talk around what was asked for; ``rewriting`` makes questions and passages of the rest;
``several_questions`` and ``imagining`` search with them.
"""
