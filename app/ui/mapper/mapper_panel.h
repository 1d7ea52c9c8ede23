// MapperPanel: makes a pipeline of a run whose ranges are named like no known framework's. At the left the names of its
// ranges, in the middle what the chosen one means, at the right the rules and what they give. The rules' text is the
// only state; what it matches is set from outside (traces/import/rule_preview.h). GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <QWidget>

#include "schedules/base/result.h"
#include "traces/import/name_patterns.h"
#include "traces/import/rule_preview.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace stagewright {

class FigureTable;

class MapperPanel : public QWidget {
    Q_OBJECT
public:
    explicit MapperPanel(QWidget* parent = nullptr);

    // null: there are none, for this reason. The rules stay.
    void setPatterns(std::shared_ptr<const std::vector<NamePattern>> patterns, const QString& reason);
    void setWorking();
    void setRules(const QString& text); // the whole text; asks for a preview
    QString rules() const;
    void setPreview(const Result<RulePreview>& preview); // of rules()

    bool chooseName(const std::string& name); // the row whose pattern matches it; false: none
    void chooseRow(int row);
    int row() const { return m_row; }                  // of the patterns; −1: none
    void setMeaning(const QString& kind);              // of the chosen name: "F", … or "" for nothing
    void setNumber(int number, NumberMeaning meaning); // of its numbers, from 0
    QString answerText() const;                        // what the rules give, with its remarks
    FigureTable* names() const { return m_names; }
    const std::vector<QComboBox*>& numberBoxes() const { return m_numbers; }
    QPushButton* applyButton() const { return m_apply; }

signals:
    void rulesChanged(); // a preview is due
    void suggestAsked();
    void openAsked();
    void saveAsked();
    void applyAsked();

private:
    void buildForm(QWidget* page);
    void buildRules(QWidget* page);
    void showName();
    void writeRule();                                 // of the chosen name, instead of those that match it
    QString kindOf(const NamePattern& pattern) const; // as the rules have it

    FigureTable* m_names;
    QLabel* m_state; // why there are no names
    QLabel* m_name;
    QComboBox* m_meaning;
    QFormLayout* m_form;
    QLabel* m_implied; // what follows from missing numbers
    std::vector<QComboBox*> m_numbers;
    QPlainTextEdit* m_rules;
    QLabel *m_answer, *m_matches, *m_order;
    QPushButton *m_suggest, *m_open, *m_save, *m_apply;
    std::shared_ptr<const std::vector<NamePattern>> m_patterns;
    std::vector<std::vector<NamePiece>> m_pieces; // by pattern, with the meanings chosen
    int m_row = -1;
    bool m_filling = false;
};

} // namespace stagewright
